// Package operate is what operators read of the dead letters and do about them: it lists, groups, edits, discards,
// exports and imports them. That a dead letter is replayed is package replay's, because it is done in the inbox's
// transaction. Each change leaves a row in the audit trail.
package operate
