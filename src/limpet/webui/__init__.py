"""The page: everything the owner can see and do, in a browser. Its code is loaded when it is first opened."""
