package postgres

// NamespaceAllowed is for tests of both ways of root.
var NamespaceAllowed = namespaceAllowed
