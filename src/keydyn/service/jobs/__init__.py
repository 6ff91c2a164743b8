"""Work off the request path: leased jobs, webhooks and their delivery, and what expires."""
