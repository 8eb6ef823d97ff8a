"""Results that others printed, measured again with the methods here, each under its own protocol."""
