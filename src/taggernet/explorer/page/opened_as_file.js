/** Says why nothing happens on a page opened from a file: browsers load no modules from there. So it is no module itself. */
const FROM_A_FILE = 'Browsers do not run this page from a file: run ‘taggernet explore’, or ‘python -m http.server’ in the folder of the site, and open the address that it prints.'

if (location.protocol === 'file:') {
  const reason = Object.assign(document.createElement('p'), { id: 'alert', className: 'alert', textContent: FROM_A_FILE })
  reason.setAttribute('role', 'alert')
  document.getElementById('stage')?.replaceWith(reason)
}
