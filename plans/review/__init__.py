"""What a review shows: differences as Markdown and pages, and findings in the forms of build servers."""
