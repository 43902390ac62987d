import { join } from 'node:path'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { AuditLog } from '../../seams/audit-log.ts'
import { AuditCopy, hasEntry } from './audit-copy.ts'
import { createCursor } from './cursor.ts'
import { createFileSink } from './file-sink.ts'
import type { Sink } from './sink.ts'
import { createStreamSink } from './stream-sink.ts'
import { createSyslogSink } from './syslog-sink.ts'
import { type AuditCopyTarget, auditCopyTarget } from './target.ts'

interface Wanted {
  readonly target: string
  /** Certificates that a collector over TLS may be signed with, PEM; Node's by default. */
  readonly ca?: string[] | undefined
}

interface Parts {
  /** The data directory. */
  readonly path: string
  readonly audit: AuditLog
  readonly clock: Clock
  readonly log: Log
}

function sinkOf(target: AuditCopyTarget, { ca }: Wanted, audit: AuditLog): Sink {
  switch (target.kind) {
    case 'file':
      return createFileSink(target.path, (head) => hasEntry(audit, head))
    case 'syslog':
      return createSyslogSink(target.socket)
    case 'tcp':
    case 'tls':
      return createStreamSink(target, ca)
  }
}

/** Errors: `usage` for a target that can't be one. */
export function openAuditCopy({ path, audit, clock, log }: Parts, wanted: Wanted): AuditCopy {
  const target = auditCopyTarget(wanted.target)
  const cursor = createCursor(join(path, 'audit-copy'), wanted.target)
  return new AuditCopy({
    audit,
    sink: sinkOf(target, wanted, audit),
    cursor,
    target: wanted.target,
    clock,
    log,
  })
}
