import { setImmediate } from 'node:timers/promises'
import type { TerminalClient } from '../../../src/server/storage/ports/terminals.ts'
import { postgresTest as test } from '../../helpers/servers/postgres.ts'
import { openSharedSites } from '../../helpers/servers/shared-sites.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

test('P43 50 MB of output wait for the client and arrive complete', async (t) => {
  const { start, link, openSession } = await openSharedSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  await openSession(b)
  const chunk = 'x'.repeat(32 * 1024)
  const all = (50 * 1024 * 1024) / chunk.length
  const ahead = (256 * 1024) / chunk.length
  const state = { shown: -1, isWilling: false, inOrder: true }
  const { client } = notedClient()
  const reading: TerminalClient = {
    ...client,
    output(sequence, json) {
      state.inOrder &&= sequence === state.shown + 1 && json.length === chunk.length + 2
      state.shown = sequence
      if (state.isWilling) attachment.acknowledge(sequence)
    },
  }
  const there = await a.terminals.site('s1')
  const attachment = there.attach('s1', reading, { after: null, watch: false })
  let isHeld = false
  const acknowledged = () => Math.max(-1, ...agent.sent('TERMINAL_ACK').map((ack) => Number(ack['sequence'])))
  /** Keeps at most 256 KiB unacknowledged, as agents do. */
  async function send(from: number): Promise<void> {
    for (let n = from; n < all; n++) {
      for (; n - acknowledged() > ahead; await setImmediate()) isHeld = true
      await agent.output(n, chunk)
    }
  }
  const sent = send(0)
  await until('the agent waits', () => isHeld)
  // Earlier frames arrive before this response.
  await there.has('s1')
  t.true(state.shown < ahead + 2, `${state.shown} chunks arrived without an acknowledgement`)
  t.is(acknowledged(), -1)
  const before = process.memoryUsage().rss
  state.isWilling = true
  attachment.acknowledge(state.shown)
  await sent
  await until('all output is shown', () => state.shown === all - 1)
  t.true(state.inOrder)
  const grown = (process.memoryUsage().rss - before) / 1024 ** 2
  t.true(grown < 100, `memory grew by ${grown.toFixed(0)} MB`)
})
