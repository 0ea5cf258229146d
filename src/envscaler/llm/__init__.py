"""Chat and embedding models: interface, endpoints, cache, metering. Imports nothing that knows environments."""
