#!/bin/sh
# rename.sh MODULE [NAME] makes the tree a project of your own, in place: make new MODULE=github.com/you/name. NAME is
# the last element of the path unless given. Command, databases, topics, groups, containers, variables and folders get
# it. You can rename a renamed tree again, so NAME must be a word that its files do not use.
set -eu
cd "$(dirname "$0")/.."
exec env PATH="$PATH:$(go env GOROOT)/bin" perl -w - "${1-}" "${2-}" <<'END'
use strict; use File::Basename 'dirname'; use File::Path 'make_path'; my ($module, $name) = @ARGV;
sub refuse { print STDERR "rename: @_\n"; exit 1 }
sub load { open my $in, '<:raw', $_[0] or die "$_[0]: $!\n"; local $/; my $all = <$in>; defined $all ? $all : '' }
sub save { open my $out, '>:raw', $_[0] or die "$_[0]: $!\n"; print $out $_[1]; close $out or die "$_[0]: $!\n" }
sub value { load($_[0]) =~ $_[1] ? $1 : refuse("$_[0] has no $_[1].") }
$module =~ m{\A[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?)+\z} && $module !~ m{/v[01]\z}
	or refuse("MODULE=$module is not a module path, such as github.com/you/name.");
$name = $1 =~ s/[^a-z0-9]+/-/gr =~ s/\A-|-\z//gr if $name eq '' && lc($module) =~ m{([^/]+?)(?:/v\d+)?\z};
$name =~ /\A[a-z][a-z0-9]+(-[a-z0-9]+)*\z/ && length $name <= 24
	or refuse("\"$name\" is not a name: give NAME=..., 2 to 24 lower-case letters, digits and hyphens, a letter first.");
my ($path, $was) = (value('go.mod', qr/^module (\S+)/m), value('internal/service/eventing/config.go', qr/ project = "(.+)"/));
my ($topics, $types) = map { value('internal/contract/definitions.go', qr/\b$_"/) } 'TopicPrefix += "(.*)', 'TypePrefix += "(.+)';
`git status --porcelain` eq '' && !$? or refuse('git status lists changes: commit or stash them first.');
refuse(".$was/ has data of the old name: run make reset first.") if -e ".$was";
my ($host, @rest) = split m{/}, lc $module; my $type = join '.', reverse(split /\./, $host), @rest, '';
sub forms { my @w = split /-/, $_[0]; my @t = map { ucfirst } @w; # a-b a_b aB A-B AB A_B
	(join('-', @w), join('_', @w), lcfirst join('', @t), join('-', @t), join('', @t), uc join('_', @w)) }
my (@new, %form) = forms($name); @form{reverse forms($was)} = reverse @new;
sub form { my ($word, $joined, $go) = @_; my $lower = $word =~ /^[a-z]/; # Go and SQL take no hyphen
	$go && $word ne uc $word ? $new[$lower ? 2 : 4] : $joined && $lower ? $new[1] : $form{$word} }
my $start = qr/(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))/; # a word may follow an escape sequence
sub pattern { my ($k, $s, $c, $t, $p, $u) = forms($_[0]);
	qr/$start(?:(?:$k|$s|$c)(?![a-z0-9])|$u(?![A-Za-z0-9]))|(?<![A-Z])(?:$t|$p)(?![a-z0-9])/ }
my %text = map { $_, load($_) } grep { -f && !-l && $_ ne 'LICENSE' } split /\0/, `git ls-files -z`;
my $topic = join '|', '(?!)', $topics ne '' ? () : map { quotemeta } map { /TopicPrefix \+ "([^"]+)"/g } values %text;
my ($old, $word, @changed) = (pattern($was), pattern($name));
my $all = qr/$start(?:(?<path>(?<![_.~-])\Q$path\E(?![\w~-]))|(?<type>\Q$types\E)|(?<!\0)(?<topic>$topic)(?!\w))/;
$all = qr/$all|(?<joined>(?<=_)$old|$old(?=_))|$old/;
sub renamed { my ($text, $go) = @_; $text =~ s{$all}{defined $+{path} ? $module : defined $+{type} ? $type
	: defined $+{topic} ? "$name.$+{topic}" : form($&, defined $+{joined}, $go)}ger }
my $literal = qr/("(?:[^"\\\n]++|\\.)*"|`[^`]*`|'(?:[^'\\\n]++|\\.)+'|\/\/[^\n]*|\/\*.*?\*\/)/s; # text in Go
for my $file (grep { $text{$_} !~ /\0/ } sort keys %text) { # no pictures
	"$file\n$text{$file}" =~ s/$all//gr =~ $word && $file !~ /_test\.go$|\.md$|^\.ci\//
		and refuse("$file uses the word \"$name\": give another one, NAME=...");
	my ($n, $new) = (0, $text{$file} =~ s/\bTopicPrefix \+ "/$&\0/gr); # NUL keeps a second prefix away
	$new = $file =~ /\.go$/ ? join '', map { renamed($_, $n++ % 2 == 0) } split $literal, $new : renamed($new);
	$new = $new =~ s/\0//gr =~ s/\bTopicPrefix += "\K"/$name."/r;
	push @changed, $file if $new ne $text{$file} || renamed($file) ne $file;
	$text{$file} = $new;
}
for my $file (@changed) {
	save($file, $text{$file});
	next if (my $at = renamed($file)) eq $file;
	make_path(dirname $at); rename $file, $at or die "$file: $!\n";
	1 while $file =~ s{/[^/]+\z}{} && rmdir $file;
}
!@changed or system('gofmt', '-w', grep { /\.go$/ } map { renamed($_) } @changed) == 0 or die "gofmt failed.\n";
my ($license, $mine) = (-f 'LICENSE' ? load('LICENSE') : '', "The $name authors");
save('LICENSE', $license =~ s/.*^Copyright [^\n]*\n\K/sprintf "Copyright (c) %d $mine\n", 1900 + (localtime)[5]/smer)
	if $license =~ /^Copyright /m && $license !~ /^Copyright .*\Q$mine\E$/m;
print "The module is $module, the project $name: ${\scalar @changed} files changed, LICENSE has your line behind the others.\n",
	"Variables: $new[5]_*, databases: $new[1]_*, topics: $name.*, event types: $type*. Next: make test, git add -A, git commit.\n";
END
