import { Closed } from './common.ts'
import { type Static, Type } from './schema.ts'

export const TotpCreate = Closed(
  { currentPassword: Type.String({ minLength: 1, maxLength: 1024 }) },
  { examples: [{ currentPassword: 'correct horse battery' }] },
)
export type TotpCreate = Static<typeof TotpCreate>

/** What an authenticator app takes: the secret as base32, or the URI as a QR code. Shown this once. */
export const TotpCreated = Type.Object({ secret: Type.String(), uri: Type.String() })
export type TotpCreated = Static<typeof TotpCreated>

/** Six digits of the app; or a recovery code, where logins take codes already. */
export const Code = Type.String({ minLength: 6, maxLength: 32 })

export const TotpConfirm = Closed({ code: Code }, { examples: [{ code: '492039' }] })
export type TotpConfirm = Static<typeof TotpConfirm>

/** Each stands in for a code once; shown only once. */
export const TotpConfirmed = Type.Object({ recoveryCodes: Type.Array(Type.String()) })
export type TotpConfirmed = Static<typeof TotpConfirmed>
