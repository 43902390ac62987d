import { Time } from './common.ts'
import { type Static, Type } from './schema.ts'

/** What the server says of itself to who is logged in; intervals, which its agents keep to, in seconds. */
export const ServerInfo = Type.Object(
  {
    version: Type.String(),
    serverTime: Time,
    /** When its process started. Older servers leave it out. */
    startedAt: Type.Optional(Time),
    heartbeatInterval: Type.Number(),
    metricsInterval: Type.Number(),
  },
  {
    examples: [
      {
        version: '0.1.0',
        serverTime: '2026-03-02T09:30:12.502Z',
        startedAt: '2026-03-01T04:00:07.118Z',
        heartbeatInterval: 30,
        metricsInterval: 60,
      },
    ],
  },
)
export type ServerInfo = Static<typeof ServerInfo>
