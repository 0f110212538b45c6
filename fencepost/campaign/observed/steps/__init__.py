"""Each step of a broker, compared with what small models of its parts say that this step does."""
