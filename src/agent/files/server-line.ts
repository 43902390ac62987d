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

/** Milliseconds for an answer: an upload is answered only once it is on the server's disk. */
const patience = 120_000

/** Transfers files of an order from and to the server, with the agent's token. */
export class ServerLine {
  readonly #send: Send
  readonly #headers: Record<string, string>
  readonly close: () => void

  private constructor(send: Send, token: string, close: () => void) {
    this.#send = send
    this.#headers = { authorization: `Bearer ${token}` }
    this.close = close
  }

  /** Reads token and authorities as the agent's own user. Sends nothing once the order is cancelled. */
  static async open(order: FileOrder, workspace: Pick<CopyWorkspace, 'isAllowed'>): Promise<ServerLine> {
    const registration = (await readIdentity(order.dataDir))?.registration
    if (!registration) throw new Failure('this agent is no longer registered', 126)
    const connection = openConnection(order)
    const send = openRequests(connection, (error) => new Error(reasonOf(error)), { answer: patience })
    const sendUnlessCancelled: Send = async (request) => {
      // Otherwise it would wait forever if the agent was removed meanwhile.
      if (!workspace.isAllowed) throw new Refused(cancelledMessage)
      return send(request)
    }
    return new ServerLine(sendUnlessCancelled, registration.token, () => connection.agent.destroy())
  }

  /**
   * Downloads a file. Throws `Failure` after the last byte if it does not match its signed checksum. Waits
   * for an unavailable server for as long as the agent lets this process run.
   */
  async *receive({ fileId, size, sha256 }: FileOfTask): AsyncGenerator<Buffer> {
    const source = {
      path: `/api/agent/files/${fileId}`,
      headers: this.#headers,
      name: `the file ${fileId}`,
      size,
      absent: 'no task running on this host needs the file',
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
    if (found !== sha256) throw new Failure(`the received data has sha256 ${found}, not ${sha256} as signed`)
  }

  /** Uploads data for a task; resolves to the number of bytes. Waits like `receive`. */
  async send(taskId: string, pieces: AsyncIterable<Buffer>): Promise<number> {
    const path = `/api/agent/tasks/${taskId}/file`
    try {
      return await sendBytes(this.#send, { path, headers: this.#headers, timeout: 0 }, pieces)
    } catch (error) {
      throw error instanceof Refused ? new Failure(error.message) : error
    }
  }
}
