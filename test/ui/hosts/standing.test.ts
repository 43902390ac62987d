import test from 'ava'
import { foldStanding } from '../../../src/ui/hosts/standing.ts'

test('A14 hosts that lost their link for one reason are one line, from the shortest time to the longest', (t) => {
  const away = (hostname: string, span: string, why = 'the agent was stopped') =>
    ({ hostname, status: 'ONLINE', statusReason: `no link for ${span} (${why})` }) as const
  t.deepEqual(
    foldStanding([
      away('web1', '14 s'),
      away('web2', '2 min'),
      away('web3', '9 s'),
      away('db1', '9 s', 'HTTP 502'),
    ]),
    [
      { names: 'web[1-3]', state: 'ONLINE: no link for 9 s to 2 min (the agent was stopped)' },
      { names: 'db1', state: 'ONLINE: no link for 9 s (HTTP 502)' },
    ],
  )
})
