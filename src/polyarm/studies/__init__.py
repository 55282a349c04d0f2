"""Durable studies: experiments that survive people, networks and crashes."""
