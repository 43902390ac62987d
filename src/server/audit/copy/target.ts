import { realpathSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import type { ServerOptions } from '../../options.ts'

/** Where the copy of the audit log goes, as `--audit-copy` names it. */
export type AuditCopyTarget =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'syslog'; readonly socket: string }
  | { readonly kind: 'tcp' | 'tls'; readonly host: string; readonly port: number }

/** Of syslog over TLS (RFC 5425 §4.1); over TCP there is none that all agree on. */
const tlsPort = 6514

function wrong(text: string, why: string): RsmError {
  return new RsmError('usage', `--audit-copy takes no ${text}: ${why}`, {
    hint: 'it takes file:/path/audit.jsonl, syslog:, syslog+tcp://HOST:PORT or syslog+tls://HOST[:PORT]',
  })
}

function pathOf(text: string, path: string): string {
  const bare = path.startsWith('///') ? path.slice(2) : path
  if (!isAbsolute(bare) || bare.startsWith('//')) throw wrong(text, 'the path has to begin with /')
  if (bare.endsWith('/')) throw wrong(text, 'it names a directory; name a file')
  return bare
}

function remote(text: string, kind: 'tcp' | 'tls'): AuditCopyTarget {
  if (!URL.canParse(text)) throw wrong(text, 'not an address')
  const { hostname, port, username, password, pathname, search, hash } = new URL(text)
  if (hostname === '') throw wrong(text, 'the host is missing')
  if (username !== '' || password !== '') throw wrong('name or password', 'syslog has no login')
  if (!['', '/'].includes(pathname) || search !== '' || hash !== '')
    throw wrong(text, 'nothing may follow the port')
  if (port === '0' || (port === '' && kind === 'tcp')) throw wrong(text, 'name the port, like :514')
  return { kind, host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? tlsPort : Number(port) }
}

/** Errors: `usage`, with what is wrong and what it takes. */
export function auditCopyTarget(text: string): AuditCopyTarget {
  const [, scheme = '', rest = ''] = /^([a-z+]*):(.*)$/s.exec(text) ?? []
  switch (scheme) {
    case 'file':
      return { kind: 'file', path: pathOf(text, rest) }
    case 'syslog':
      return { kind: 'syslog', socket: rest === '' ? '/dev/log' : pathOf(text, rest) }
    case 'syslog+tcp':
      return remote(text, 'tcp')
    case 'syslog+tls':
      return remote(text, 'tls')
    default:
      throw wrong(text, 'unknown scheme')
  }
}

/** The same with links in its directories followed; as it is where they are not there yet. */
function resolved(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === '/' ? path : join(resolved(dirname(path)), path.slice(dirname(path).length))
  }
}

/**
 * Errors: `usage` for what is no target, and for a file in the data directory: it would be among the server's own, and go with
 * them.
 */
export function refuseBadCopy({ auditCopy, dataDir }: Pick<ServerOptions, 'auditCopy' | 'dataDir'>): void {
  if (auditCopy === undefined) return
  const target = auditCopyTarget(auditCopy.target)
  if (target.kind !== 'file') return
  const from = relative(resolved(resolve(dataDir)), resolved(target.path))
  if (from.startsWith('..')) return
  throw wrong(auditCopy.target, 'it is in the data directory; the copy has to be in another place')
}

/** The directory that a server has to be able to write for it. */
export function directoryOfCopy(text: string | undefined): string[] {
  const target = text === undefined ? null : auditCopyTarget(text)
  return target?.kind === 'file' ? [dirname(target.path)] : []
}
