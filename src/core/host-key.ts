/** A host's SSH key as `ssh-keygen -l` and OpenSSH's log show it: `SHA256:` and base64 without its `=`. */
export const hostKeyPattern = '^SHA256:[A-Za-z0-9+/]{43}$'
