"""One file for each family of formats; each gives a `Listing`, which ``demonet.data.files`` makes into a Data."""
