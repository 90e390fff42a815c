package migrations

// Customer has the tables of the Customer service alone.
var Customer = Folder("customer", files, "customer")

// ForCustomer lists the migrations of the Customer service's database, in their order.
func ForCustomer() []Set { return []Set{Audit, Outbox, Inbox, Customer, Command} }
