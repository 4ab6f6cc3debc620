"""Questions about scenes and their answers, made by functional programs (EmbodiedQA, Das et al. 2018)."""
