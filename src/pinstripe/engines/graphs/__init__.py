"""What the engines that load an exported graph share."""
