"""Agents of the three levels, the proxy between them and the world, and how coordinators command."""
