package main

// MailCommands are "twinbox mail ...".
type MailCommands struct {
	List     MailList   `cmd:"" aliases:"ls" help:"The mails that wait for an operator's decision: uncertain and failed ones."`
	Retry    MailChange `cmd:"" post:"/admin/v1/mails/retry" done:"Put back" would:"put back" thing:"mail" help:"Send uncertain or failed mails again. An uncertain one may then arrive twice."`
	MarkSent MailChange `cmd:"" post:"/admin/v1/mails/mark-sent" done:"Marked" would:"mark" thing:"mail" after:" as sent" help:"Settle uncertain mails of which you know that they arrived."`
}

// MailList is "twinbox mail list".
type MailList struct {
	Listing `json:"-"`
	Window

	State     string `json:"state,omitempty" help:"In this state, such as uncertain; open: uncertain or failed; all: in any." default:"open" env:"-"`
	User      string `json:"user_id,omitempty" help:"To this user." env:"-" placeholder:"UUID"`
	EventID   string `json:"event_id,omitempty" help:"Because of this event." name:"event-id" env:"-"`
	Recipient bool   `json:"recipient,omitempty" help:"Show addresses, which are personal data." env:"-"`
	Limit     *int   `json:"limit" default:"100" help:"How many of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	After     string `json:"after,omitempty" help:"Those after this one; the next page." env:"-" placeholder:"ID"`
}

// MailChange is "twinbox mail retry" and "... mark-sent".
type MailChange struct {
	Change

	IDs []string `arg:"" name:"id" json:"ids" help:"Mails, as \"mail list\" shows them." names:"mail list: id"`
}
