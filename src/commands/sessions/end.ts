import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { doToEach } from '../../cli/command/failure.ts'
import { anyNumber } from '../../cli/flags/checks.ts'
import { counted } from '../../cli/text/amounts.ts'
import { RsmError } from '../../core/errors.ts'

const sessionId = /^[1-9]\d{0,15}$/
const listThem = 'rsm sessions list shows the ids'

export default class SessionsEnd extends BaseCommand {
  static override summary = 'End your login sessions; their terminals close at once'
  static override examples = ['$ rsm sessions end 12', '$ rsm sessions end --others']
  static override args = { id: anyNumber('session ids, as rsm sessions list shows them') }
  static override flags = { others: boolean({ description: 'all sessions but this one' }) }

  async run() {
    const { args, flags } = await this.parse(SessionsEnd)
    const ids = [...new Set(args.id ?? [])]
    if (flags.others === ids.length > 0)
      throw new RsmError('usage', 'no sessions given: add ids or --others', { hint: listThem })
    const odd = ids.find((id) => !sessionId.test(id))
    if (odd !== undefined) throw new RsmError('usage', `invalid session id: ${odd}`, { hint: listThem })
    const client = await this.client()
    if (flags.others) {
      const answer = await client.sessions.removeOthers()
      this.done(`ended ${counted(answer.ended, 'other session')}`)
      return answer
    }
    const nameOf = (id: number) => `session ${id}`
    const done = (ended: readonly number[]) => this.done(`ended ${ended.map(nameOf).join(', ')}`)
    const removed = await doToEach(ids.map(Number), { nameOf, json: flags.json, done }, (id) =>
      client.sessions.remove(id),
    )
    return ids.length === 1 ? removed[0] : removed
  }
}
