// Package netlab owns networks of this machine that exist for one purpose: namespaces, and virtual cables between them.
//
// Nothing has a name that another process could meet, and nothing is pinned. A namespace lives as long as the thread that
// keeps it, and whatever is in it goes with it: so a lab is gone when Close returns, and just as gone when the process is
// killed. Programs that were started in a namespace end with their parent.
package netlab
