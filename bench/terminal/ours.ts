import { openClient } from '../../src/client/client.ts'
import { Attachment } from '../../src/net/attachment.ts'
import type { BenchServer } from '../fleet/server.ts'
import { Screen } from './screen.ts'

/** A shell on the fleet's first host, through this server, with acknowledgements and a recording. */
export async function openTerminal({ url, token }: BenchServer, shell: string): Promise<Screen> {
  const client = await openClient({ url, token })
  const { content } = await client.hosts.list({})
  const [host] = content
  if (!host) throw new Error('the fleet has no host')
  const { sessionId } = await client.terminals.create({ hostId: host.id, cols: 80, rows: 24, shell })
  return new Promise((resolve, reject) => {
    let ended: Promise<unknown> = Promise.resolve()
    const screen = new Screen({
      type: (data) => void attachment.type(data),
      async close() {
        attachment.leave()
        await ended
      },
    })
    const attachment = new Attachment({
      sessionId,
      watch: false,
      open: client.session(sessionId, false),
      attached: () => resolve(screen),
      output(data, shown) {
        screen.show(data)
        shown()
      },
      resized: () => {},
      notice: () => {},
      refused: (message) => reject(new Error(message)),
      cut: () => {},
      drained: () => {},
    })
    ended = attachment.run().then((end) => screen.end(JSON.stringify(end)), reject)
  })
}
