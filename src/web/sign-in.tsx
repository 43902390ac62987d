import { useState } from 'preact/hooks'
import { RsmError } from '../core/errors.ts'
import type { LoginResult } from '../core/protocol/http/users.ts'
import { call, errorText } from './api.ts'
import { useTitle } from './parts/browser.ts'
import { Fault } from './parts/shown.tsx'
import { parting, session } from './session.ts'
import { useStore } from './store.ts'

/** Whether the server asks for an authenticator code, or for another one. */
const asksForCode = (error: unknown): boolean =>
  error instanceof RsmError && error.fields.some(({ field }) => field === 'code')

/** Browsers honour `autofocus` only during page load. */
const focus = (field: HTMLInputElement | null) => field?.focus()

export function SignIn() {
  useTitle('Sign in')
  const word = useStore(parting)
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [takesCode, setTakesCode] = useState(false)

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setBusy(true)
    setFault('')
    try {
      const { token, user } = await call<LoginResult>('POST', 'api/auth/login', {
        body: {
          username: form.get('username'),
          password: form.get('password'),
          ...(takesCode && { code: form.get('code') }),
        },
      })
      parting.set('')
      session.set({ token, user })
    } catch (error) {
      if (asksForCode(error)) setTakesCode(true)
      setFault(takesCode || !asksForCode(error) ? errorText(error) : '')
      setBusy(false)
    }
  }

  return (
    <main class="sign-in">
      <form onSubmit={(event) => void submit(event)}>
        <h1>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M8 10l6 6-6 6M17 22h8" />
          </svg>
          Sign in to rsm
        </h1>
        <p role="status" class="hint">
          {word}
        </p>
        <label>
          User
          <input
            name="username"
            required
            autoComplete="username"
            autoCapitalize="off"
            spellcheck={false}
            autoFocus
          />
        </label>
        <label>
          Password
          <input name="password" type="password" required autoComplete="current-password" />
        </label>
        {takesCode && (
          <label>
            Code from the authenticator app
            <input name="code" required minLength={6} autoComplete="one-time-code" ref={focus} />
          </label>
        )}
        <Fault text={fault} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  )
}
