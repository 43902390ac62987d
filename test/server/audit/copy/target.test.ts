import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { auditCopyTarget, refuseBadCopy } from '../../../../src/server/audit/copy/target.ts'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'

test('--audit-copy takes a file, the local syslog, and syslog over TCP and TLS', (t) => {
  const takes = (text: string, target: object) => t.deepEqual(auditCopyTarget(text), target as never, text)
  takes('file:/var/log/rsm/audit.jsonl', { kind: 'file', path: '/var/log/rsm/audit.jsonl' })
  takes('file:///var/log/a b.jsonl', { kind: 'file', path: '/var/log/a b.jsonl' })
  takes('syslog:', { kind: 'syslog', socket: '/dev/log' })
  takes('syslog:/run/other/log', { kind: 'syslog', socket: '/run/other/log' })
  takes('syslog+tcp://logs.example.org:514', { kind: 'tcp', host: 'logs.example.org', port: 514 })
  takes('syslog+tls://[2001:db8::1]', { kind: 'tls', host: '2001:db8::1', port: 6514 })
})

const wrong: readonly (readonly [text: string, why: RegExp])[] = [
  ['', /unknown scheme/],
  ['/var/log/audit.jsonl', /unknown scheme/],
  ['syslog+udp://logs:514', /unknown scheme/],
  ['file:audit.jsonl', /the path has to begin with \//],
  ['file://logs/audit.jsonl', /the path has to begin with \//],
  ['file:/var/log/', /it names a directory/],
  ['syslog+tcp://logs', /name the port, like :514/],
  ['syslog+tcp://:514', /not an address|the host is missing/],
  ['syslog+tls://logs:99999', /not an address/],
  ['syslog+tls://logs:6514/path', /nothing may follow the port/],
]
for (const [text, why] of wrong)
  test(`--audit-copy ${text || '(nothing)'} is refused with the way out`, (t) => {
    const error = t.throws(() => auditCopyTarget(text), { code: 'usage', message: why })
    t.regex((error as unknown as { hint: string }).hint, /^it takes file:\/path\/audit\.jsonl, syslog:, /)
  })

test('--audit-copy repeats no password that was given for it', (t) => {
  const error = t.throws(() => auditCopyTarget('syslog+tls://ann:secret@logs'))
  t.regex(error.message, /syslog has no login/)
  t.notRegex(error.message, /secret/)
})

test('a copy within the data directory is refused, also through a link and where nothing is there yet', (t) => {
  const home = temporaryDirectory(t)
  const dataDir = join(home, 'data')
  mkdirSync(join(dataDir, 'audit'), { recursive: true })
  symlinkSync(dataDir, join(home, 'link'))
  const refused = (path: string) =>
    t.throws(() => refuseBadCopy({ auditCopy: { target: `file:${path}` }, dataDir }), {
      message: /it is in the data directory/,
    })
  refused(join(dataDir, 'audit', 'audit.log'))
  refused(join(home, 'link', 'new', 'copy.jsonl'))
  refused(join(home, 'link', 'copy.jsonl'))
  t.notThrows(() => refuseBadCopy({ auditCopy: { target: `file:${home}/data.jsonl` }, dataDir }))
  t.notThrows(() => refuseBadCopy({ auditCopy: undefined, dataDir }))
})
