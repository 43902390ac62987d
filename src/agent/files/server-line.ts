import { createHash } from 'node:crypto'
import type { FileOfTask } from '../../core/protocol/messages.ts'
import { Failure } from '../../disk/files/failure.ts'
import { openConnection, reasonOf } from '../../net/connect.ts'
import { openRequests, type Send } from '../../net/request.ts'
import { readIdentity } from '../link/identity.ts'
import { type CopyWorkspace, cancelledMessage } from './copy-workspace.ts'
import type { FileOrder } from './order.ts'
import { Refused, receive } from './receive.ts'
import { sendBytes } from './send.ts'

/** Milliseconds for an answer: to what is sent it comes when all is on the server's disk, as slowly as that takes it. */
const patience = 120_000

/** What the server has of an order, and takes; as the agent, whose token it is. */
export class ServerLine {
  readonly #send: Send
  readonly #headers: Record<string, string>
  readonly close: () => void

  private constructor(send: Send, token: string, close: () => void) {
    this.#send = send
    this.#headers = { authorization: `Bearer ${token}` }
    this.close = close
  }

  /** Reads what only the agent's own user may: token and authorities. Asks for nothing once the order in `workspace` was cancelled. */
  static async open(order: FileOrder, workspace: Pick<CopyWorkspace, 'isAllowed'>): Promise<ServerLine> {
    const registration = (await readIdentity(order.dataDir))?.registration
    if (!registration) throw new Failure('this agent is not registered any more', 126)
    const connection = openConnection(order)
    const send = openRequests(connection, (error) => new Error(reasonOf(error)), { answer: patience })
    const sendUnlessCancelled: Send = async (request) => {
      // Else it would wait for a server for ever whose agent was removed meanwhile.
      if (!workspace.isAllowed) throw new Refused(cancelledMessage)
      return send(request)
    }
    return new ServerLine(sendUnlessCancelled, registration.token, () => connection.agent.destroy())
  }

  /**
   * The bytes of a file, as they were signed: `Failure` follows on the last one where they are not. Waits for a server that is
   * away for as long as the agent lets this process run.
   */
  async *receive({ fileId, size, sha256 }: FileOfTask): AsyncGenerator<Buffer> {
    const source = {
      path: `/api/agent/files/${fileId}`,
      headers: this.#headers,
      name: `the file ${fileId}`,
      size,
      absent: 'no task that runs on this host needs the file any more',
      timeout: 0,
    }
    const hash = createHash('sha256')
    try {
      for await (const piece of receive(this.#send, source)) {
        hash.update(piece)
        yield piece
      }
    } catch (error) {
      throw error instanceof Refused ? new Failure(error.message) : error
    }
    const found = hash.digest('hex')
    if (found !== sha256)
      throw new Failure(`what the server sent has the sha256 ${found}, not ${sha256} as was signed`)
  }

  /** Sends what a task reads from this host; answers how many bytes there were. Waits as `receive` does. */
  async send(taskId: string, pieces: AsyncIterable<Buffer>): Promise<number> {
    const path = `/api/agent/tasks/${taskId}/file`
    try {
      return await sendBytes(this.#send, { path, headers: this.#headers, timeout: 0 }, pieces)
    } catch (error) {
      throw error instanceof Refused ? new Failure(error.message) : error
    }
  }
}
