"""What the engines on PyTorch share."""
