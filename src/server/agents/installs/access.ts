import type { Keys } from '../../storage/ports/keys.ts'
import type { HostRecord } from '../../storage/records/host.ts'
import { InstallFault } from './install-fault.ts'

/** How to log in to a host. */
export interface Access {
  readonly ip: string
  readonly port: number
  readonly username: string
  readonly login: { readonly password: string } | { readonly privateKey: string }
  /** The stored password, whatever the login is: sudo may ask for it. */
  readonly password: string | null
}

/** The stored credentials of a host, opened. Errors: InstallFault, which says what is missing and how it is given. */
export function accessOf(host: HostRecord, keys: Pick<Keys, 'open'>): Access {
  const { id, hostname, ip, sshPort: port, authType, username } = host
  const missing = (what: string, option: string) =>
    new InstallFault(`${hostname} has no ${what}: rsm hosts edit ${hostname} ${option}`)
  const opened = (field: 'password' | 'privateKey'): string | null => {
    const sealed = host[field]
    if (sealed === null) return null
    try {
      return keys.open(sealed, `hosts/${id}/${field}`)
    } catch {
      throw new InstallFault(
        `the stored ${field} of ${hostname} cannot be opened: the key that it was sealed with is gone; store it again`,
      )
    }
  }
  if (authType === 'NONE')
    throw missing('SSH credentials', '--ssh-user USER with --private-key FILE or --password-stdin')
  if (username === null) throw missing('SSH user', '--ssh-user USER and its credentials')
  const password = opened('password')
  if (authType === 'PASSWORD') {
    if (password === null) throw missing('SSH password', '--password-stdin')
    return { ip, port, username, login: { password }, password }
  }
  const privateKey = opened('privateKey')
  if (privateKey === null) throw missing('SSH key', '--private-key FILE')
  return { ip, port, username, login: { privateKey }, password }
}
