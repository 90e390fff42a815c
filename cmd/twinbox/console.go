package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"example.com/twinbox/internal/ops/console"
)

type consoleCommand struct {
	Addr string   `help:"Where the page is served, in plain HTTP: on loopback, unless a proxy with TLS is before it." default:"127.0.0.1:8090" env:"-" placeholder:"HOST:PORT"`
	Host []string `help:"Name under which it may be asked, besides localhost and IP addresses; may be repeated." env:"-" placeholder:"NAME"`
	Link []string `help:"Another page to link to; may be repeated." sep:"none" env:"-" placeholder:"TITLE=URL"`
}

// Run serves the page until the context ends. Without a token it shows the flow alone.
func (c *consoleCommand) Run(ctx context.Context, to *streams, at *Connection) error {
	found, err := at.find()
	if err != nil {
		return err
	}
	services, err := at.clients(found)
	if err != nil {
		return err
	}
	readOnly := found.Token == ""
	var links []console.Link
	for _, link := range c.Link {
		title, url, ok := strings.Cut(link, "=")
		if !ok {
			return usage("--link " + link + ": write it as TITLE=URL")
		}
		links = append(links, console.Link{Title: title, URL: url})
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("serve console: %w; choose another address with --addr", err)
	}
	cfg := console.Config{
		Services: services, ReadOnly: readOnly, Links: links, Hosts: c.Host,
		Log: slog.New(slog.NewTextHandler(to.err, nil)),
	}
	if !at.isGiven() { // else the folder's report may be of another system
		cfg.Dir = at.Dir
	}
	page := console.New(cfg)
	address := "http://" + listener.Addr().String()
	if readOnly {
		to.say("Console, read-only as there is no token: %s", address)
	} else {
		to.say("Console: %s%s\nThe link signs in the first browser that opens it. Ctrl-C stops it.", address,
			page.SignIn())
	}
	return page.Run(ctx, listener)
}
