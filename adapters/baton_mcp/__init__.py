"""Baton for MCP clients: four tools over standard input and output (`baton mcp`)."""
