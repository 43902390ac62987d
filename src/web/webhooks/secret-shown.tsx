import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { copyText } from '../parts/copy-text.ts'

/** The secret that signs what is sent, which the server shows once. Only the button closes it. */
export function SecretShown({ name, secret, onDone }: { name: string; secret: string; onDone: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const [isCopied, setCopied] = useState(false)
  useLayoutEffect(() => {
    dialog.current?.showModal()
    field.current?.select()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby="secret-shown" onCancel={(event) => event.preventDefault()}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onDone()
        }}
      >
        <h2 id="secret-shown">{`The secret of ‘${name}’`}</h2>
        <p>It is shown only once. Give it to the receiver, which uses it to verify the sender.</p>
        <input ref={field} class="code" readOnly aria-label="Secret" value={secret} />
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              field.current?.select()
              copyText(secret)
              setCopied(true)
            }}
          >
            Copy
          </button>
          <span role="status" class="hint">
            {isCopied ? 'Copied' : ''}
          </span>
          <span class="spring" />
          <button type="submit" class="primary">
            I have kept it
          </button>
        </div>
      </form>
    </dialog>
  )
}
