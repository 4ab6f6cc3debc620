"""Networks, one file per format. All are functions: state, previous action and mask go in, state comes out."""
