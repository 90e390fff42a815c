package migrations

// Notification has the tables of the Notification service alone.
var Notification = Folder("notification", files, "notification")

// ForNotification lists the migrations of the Notification service's database, in their order.
func ForNotification() []Set { return []Set{Audit, Outbox, Inbox, Lease, Notification} }
