import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'
import { findToken } from '../../ui/names/names.ts'

export default class TokensRemove extends RemovalCommand {
  static override summary = 'Revoke one of your personal access tokens; what depends on it closes at once'
  static override examples = ['$ rsm tokens remove nightly --yes']
  static override args = {
    token: namesToRemove('names of tokens, or their ids'),
  }
  static override flags = { ...removalFlags }

  async run() {
    const { args, flags } = await this.parse(TokensRemove)
    this.globals = flags
    const client = await this.client()
    return this.removeNamed(
      args.token,
      {
        find: (name) => findToken(client, name),
        noun: 'token',
        nameOf: (token) => `${token.name ?? 'without a name'} (id ${token.id})`,
        remove: ({ id }) => client.tokens.remove(id),
      },
      flags.yes,
    )
  }
}
