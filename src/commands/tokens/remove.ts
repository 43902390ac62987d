import { findToken } from '../../client/names.ts'
import type { Token } from '../../core/protocol/http/tokens.ts'
import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'

export default class TokensRemove extends RemovalCommand {
  static override summary = 'Revoke one of your personal access tokens; what hangs on it closes at once'
  static override examples = ['$ rsm tokens remove nightly --yes']
  static override args = {
    token: namesToRemove('names of tokens, or their ids'),
  }
  static override flags = { ...removalFlags }

  async run() {
    const { args, flags } = await this.parse(TokensRemove)
    this.globals = flags
    const client = await this.client()
    const names = args.token
    const found = await this.lookUp(names, (name) => findToken(client, name))
    const removed = await this.removeAll(
      found,
      {
        noun: 'token',
        nameOf: (token: Token) => `${token.name ?? 'without a name'} (id ${token.id})`,
        remove: ({ id }) => client.tokens.remove(id),
      },
      flags.yes,
    )
    return names.length === 1 ? removed[0] : removed
  }
}
