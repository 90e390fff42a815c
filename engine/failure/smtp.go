package failure

// smtpRows are a mail server's answers: by enhanced status code (RFC 3463) first, then by the three digits (RFC 5321),
// then by the first of them.
var smtpRows = []Rows{
	{Transient, "the server says: not now", "smtp_4"},
	{Permanent, "the server says: never", "smtp_5"},
	{
		Transient, "login, TLS and account are put right by an operator; no mail is at fault",
		"smtp_530 smtp_534 smtp_535 smtp_538 smtp_5.7.8 smtp_5.7.9 smtp_5.7.11 smtp_5.7.14",
	},
	{Transient, "means too many recipients for now (RFC 5321, 4.5.3.1.10), where no enhanced code says more", "smtp_552"},
	{Permanent, "the mail is too large for the server", "smtp_5.3.4"},
	{Unknown, "the mailbox is full: people make room, or do not", "smtp_5.2.2"},
	{
		Unknown, "server and client do not understand each other",
		"smtp_500 smtp_501 smtp_502 smtp_503 smtp_504 smtp_5.5",
	},
}
