/** What went wrong, told to screen readers as it comes; nothing is seen of an empty one. */
export function Fault({ text }: { text: string }) {
  return (
    <p role="alert" class="fault">
      {text}
    </p>
  )
}
