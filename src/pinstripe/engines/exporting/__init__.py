"""How is a graph made of a model? In a process of its own, `python -m pinstripe.engines.exporting DIRECTORY`."""
