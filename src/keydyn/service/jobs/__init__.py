"""Work off the request path: leased jobs, webhooks and their delivery, and the deletion of expired rows."""
