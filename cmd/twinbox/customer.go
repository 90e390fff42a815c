package main

import "maps"

// twoAdmins are flags for the services that the tree comes with. A service of your own has --admin.
type twoAdmins struct {
	CustomerAdmin     string `help:"Customer's admin listener." placeholder:"HOST:PORT" listener:""`
	NotificationAdmin string `help:"Notification's admin listener." placeholder:"HOST:PORT" listener:""`
}

func (a twoAdmins) given() map[string]string {
	given := map[string]string{"customer": a.CustomerAdmin, "notification": a.NotificationAdmin}
	maps.DeleteFunc(given, func(_, addr string) bool { return addr == "" })
	return given
}
