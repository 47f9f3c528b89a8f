"""What public functions do before and after the ops they call: cast under autocast, ``out=``."""
