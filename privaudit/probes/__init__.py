"""What an audit tries, one module a kind: each probe measures members beside held-out patients."""
