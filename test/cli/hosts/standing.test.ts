import test from 'ava'
import { foldStanding } from '../../../src/cli/hosts/standing.ts'
import { healthyAgent } from '../../helpers/api/records.ts'

test('A14 hosts that lost their link for the same reason share a line, with the shortest and the longest time', (t) => {
  const gone = { ...healthyAgent, connected: false, reachable: false, linkLostAt: '2026-03-02T09:58:00.000Z' }
  const away = (hostname: string, statusReason: string) =>
    ({ hostname, status: 'ONLINE', statusReason, agent: gone }) as const
  t.deepEqual(
    foldStanding([
      away('web1', 'its agent was stopped 14 s ago'),
      away('web2', 'its agent was stopped 2 min ago'),
      away('web3', 'its agent was stopped 9 s ago'),
      away('db1', 'no link for 9 s (HTTP 502)'),
      away('db2', 'no link for 3 s (HTTP 502)'),
    ]),
    [
      { names: 'web[1-3]', state: 'NO LINK: its agent was stopped 9 s to 2 min ago' },
      { names: 'db[1-2]', state: 'NO LINK for 3 to 9 s (HTTP 502)' },
    ],
  )
})
