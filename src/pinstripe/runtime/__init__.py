"""How does a process start on those cores with those knobs, and did they take?"""
