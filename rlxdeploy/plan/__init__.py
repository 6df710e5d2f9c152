"""RemoteFiles and Survey in, Plan out: the steps from one to the other, as data."""
