"""`aj check URL`: plays the contract against any asynchronous HTTP API, and says point by point what holds.

It needs the standard library and click only, and knows nothing of how the API at the other side is made.
Nothing is imported here, so that whoever needs one part loads no other.
"""
