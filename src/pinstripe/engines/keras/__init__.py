"""What the engines on TensorFlow share: an encoder of keras-hub that holds a model's own weights."""
