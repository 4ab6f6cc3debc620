"""Networks, one module per format; functions from inputs with the recurrent state to outputs with the next state."""
