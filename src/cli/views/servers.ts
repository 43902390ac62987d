import type { Server } from '../../core/protocol/http/server.ts'
import type { Column } from '../text/table.ts'
import { timeColumn } from '../text/time.ts'

export function serverColumns(utc: boolean): readonly Column<Server>[] {
  return [
    { heading: 'NAME', value: ({ name, isThis }) => (isThis ? `${name} *` : name), essential: true },
    { heading: 'VERSION', value: ({ version }) => version },
    { heading: 'ADDRESS', value: ({ address }) => address },
    { ...timeColumn('STARTED', ({ startedAt }) => startedAt, utc), spare: true },
    { ...timeColumn('LEASE UNTIL', ({ leaseUntil }) => leaseUntil, utc), spare: true },
    { heading: 'LINKS', value: ({ links }) => links },
    { heading: 'TASKS', value: ({ tasks }) => tasks },
    {
      heading: 'FAULTS',
      value: ({ faults }) => (faults.length === 0 ? null : faults.join('; ')),
      tone: ({ faults }) => (faults.length === 0 ? undefined : 'red'),
      wrap: true,
    },
  ]
}
